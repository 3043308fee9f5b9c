#!/usr/bin/env bash
# Stop what start.sh started: cancel all jobs, end the daemons by their pids, and remove configuration and state.
set -euo pipefail
etc=/etc/slurm state=/run/encore-slurm mark="# written by Encore's tests/slurm/start.sh"

end() { # PIDFILE NAME: end the process of that number if it has that name, and wait until it is gone
    local pid
    read -r pid <"$1" || return 0
    for ((i = 0; i < 150; i++)); do
        [[ $(cat "/proc/$pid/comm" 2>/dev/null) == "$2" ]] || break
        kill -s "$( ((i < 100)) && echo TERM || echo KILL)" "$pid" 2>/dev/null || true
        sleep 0.2
    done
    rm -f "$1"
}

if [[ -s $state/control/slurmctld.pid ]] && timeout 5 scontrol ping &>/dev/null; then
    timeout 10 scancel --user="$(id -un)" || true
    for ((i = 0; i < 50; i++)); do
        [[ -n $(timeout 5 squeue --noheader --states=PENDING,RUNNING,COMPLETING) ]] || break
        sleep 0.2
    done
fi
for name in slurmd control/slurmctld; do
    [[ ! -s $state/$name.pid ]] || end "$state/$name.pid" "${name#*/}"
done
[[ ! -s /run/munge/encore.pid ]] || end /run/munge/encore.pid munged
for file in slurm.conf gres.conf cgroup.conf; do
    ! grep -qsxF "$mark" "$etc/$file" || rm "$etc/$file"
done
rm -rf "$state"
