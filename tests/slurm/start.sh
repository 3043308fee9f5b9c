#!/usr/bin/env bash
# Start a real SLURM of one node on this Debian 12 machine, for tests: munged, slurmctld and slurmd, as root, without
# systemd, cgroups or accounting (jobs are watched with squeue). It installs what is missing. The node may declare more
# than the machine has. Always run stop.sh afterwards: a slurm.conf without its daemon slows every snakemake command.
#
#   bash tests/slurm/start.sh [--cpus N] [--memory-mb N] [--gpus N]      defaults: 8 CPUs, 8000 MB, 2 (fake) GPUs
set -euo pipefail
cpus=8 memory=8000 gpus=2
while (($#)); do
    case $1 in
        --cpus) cpus=${2:?} ;;
        --memory-mb) memory=${2:?} ;;
        --gpus) gpus=${2:?} ;;
        *) echo "start.sh: unknown option $1" >&2 && exit 2 ;;
    esac
    shift 2
done
here=$(cd "$(dirname "$0")" && pwd)
etc=/etc/slurm state=/run/encore-slurm mark="# written by Encore's tests/slurm/start.sh"
export PATH=$PATH:/usr/sbin

fail() {
    echo "start.sh: $1" >&2
    tail -n 8 "$state"/*.log >&2 2>/dev/null || true
    exit 1
}
await() { # SECONDS COMMAND...: until the command succeeds
    local end=$((SECONDS + $1))
    shift
    until "$@" &>/dev/null; do
        ((SECONDS < end)) || fail "waited in vain for: $*"
        sleep 0.2
    done
}
install_packages() {
    local policy=/usr/sbin/policy-rc.d ours=
    [[ -e $policy ]] || { # packages must not start daemons of their own
        ours=$policy
        printf '#!/bin/sh\nexit 101\n' >$policy && chmod +x $policy
    }
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends -o DPkg::Lock::Timeout=300 \
        slurmctld slurmd slurm-client munge >/dev/null || fail "apt-get could not install SLURM"
    rm -f $ours
}
idle() { [[ $(sinfo --noheader --format=%T --partition=main) == idle ]]; }
munge_answers() { munge --no-input | unmunge; }

((EUID == 0)) || fail "must be root"
[[ ! -s $etc/slurm.conf ]] || grep -qxF "$mark" $etc/slurm.conf || fail "$etc/slurm.conf belongs to another SLURM"
[[ -x $(command -v slurmctld) && -x $(command -v slurmd) && -x $(command -v sbatch) && -x $(command -v munged) ]] ||
    install_packages
bash "$here/stop.sh"
install -d $etc $state $state/spool
install -d -o slurm -g slurm $state/control
for ((i = 0; i < gpus; i++)); do ln -sfn /dev/null "$state/gpu$i"; done

# SLURM listens on loopback alone only if the host's name is there; requests need this machine's munge key anyway.
listen=
[[ $(getent ahostsv4 "$(hostname)" | awk 'NR == 1 {print $1}') != 127.0.0.1 ]] ||
    listen="CommunicationParameters=NoCtldInAddrAny,NoInAddrAny"
cat >$etc/slurm.conf <<CONF
$mark
ClusterName=encore
SlurmctldHost=localhost(127.0.0.1)
$listen
SlurmUser=slurm
SlurmdUser=root
StateSaveLocation=$state/control
SlurmdSpoolDir=$state/spool
SlurmctldPidFile=$state/control/slurmctld.pid
SlurmdPidFile=$state/slurmd.pid
SlurmctldLogFile=$state/control/slurmctld.log
SlurmdLogFile=$state/slurmd.log
MailProg=/bin/true
MpiDefault=none
ReturnToService=2
PropagateResourceLimits=NONE
# Memory is a limit, watched every second, without cgroups.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
# What can never run is refused at once; finished jobs stay in squeue for an hour, where Snakemake looks for them.
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
EnforcePartLimits=ALL
MinJobAge=3600
KillWait=5
SchedulerParameters=batch_sched_delay=1,sched_min_interval=200000,bf_interval=5
AccountingStorageType=accounting_storage/none
GresTypes=gpu
SlurmdParameters=config_overrides
NodeName=node NodeHostname=localhost NodeAddr=127.0.0.1 CPUs=$cpus RealMemory=$memory Gres=gpu:fake:$gpus
PartitionName=main Nodes=node Default=YES MaxTime=INFINITE DefMemPerCPU=200
PartitionName=gpu Nodes=node MaxTime=INFINITE DefMemPerCPU=200
CONF
{
    echo "$mark"
    echo "AutoDetect=off"
    for ((i = 0; i < gpus; i++)); do echo "NodeName=node Name=gpu Type=fake File=$state/gpu$i"; done
} >$etc/gres.conf
printf '%s\n' "$mark" "CgroupPlugin=cgroup/v1" >$etc/cgroup.conf # unused, but slurmd loads one; this needs no mount

munge_answers &>/dev/null || {
    [[ -s /etc/munge/munge.key ]] || runuser -u munge -- mungekey --create
    install -d -o munge -g munge -m 755 /run/munge
    runuser -u munge -- munged --force --pid-file=/run/munge/encore.pid </dev/null &>"$state/munged.log" || fail "munged"
}
await 120 munge_answers
slurmctld </dev/null &>"$state/slurmctld.out.log" || fail "slurmctld"
await 300 scontrol ping
slurmd -N node </dev/null &>"$state/slurmd.out.log" || fail "slurmd"
await 300 idle
echo "SLURM $(sinfo --version | cut -d' ' -f2) is up: $cpus CPUs, $memory MB, $gpus GPUs, partitions main and gpu"
