"""What Encore does to Snakemake 9, or asks of it, beyond its manual; tests/workflow/test_private.py tries each.

What the command line said (configfiles, dryrun, executor_plugin, ..._settings) is read where it is needed.
"""


def seeks_jobs():
    """Whether jobs are sought, and rules not only looked at, as by --lint."""
    return workflow.dag is not None


def make_again(files):
    """Have Snakemake make files though all that is made from them exists.

    --forcerun makes a target of each as well, and has to name them before any job is known.
    """
    workflow.dag.forcefiles.update(files)


def files_of_runs():
    """The files that runs at work in this folder read and make, unless --nolock says to ignore those.

    No command of Snakemake's lists what its locks hold.
    """
    if workflow.execution_settings is not None and not workflow.execution_settings.lock:
        return set()
    return {line for lock in Path(".snakemake/locks").glob("*.lock") for line in lock.read_text().splitlines()}


def has_gpus(rule):
    """Whether the profile gives a rule GPUs.

    `threads:` is not told of resources, and a profile's `set-threads` knows no size of a training's batches.
    """
    return not {"gpu", "gres"}.isdisjoint(workflow.resource_settings.overwrite_resources.get(rule, {}))


def requests_gpus():
    """Whether a job that is to run requests GPUs of a cluster."""
    jobs = (job for job in workflow.dag.needrun_jobs() if has_gpus(job.rule.name))
    return any(job.resources.get("gres") or job.resources.get("gpu") for job in jobs)


def partitions_asked():
    """The partitions of the cluster that jobs which are to run ask for, by one job of each rule."""
    jobs = {job.rule.name: job for job in workflow.dag.needrun_jobs()}
    return {
        name for job in jobs.values() for name in str(job.resources.get("slurm_partition") or "").split(",") if name
    }


def left_without_gpus():
    """The rules to run that compute on GPUs and request none, because another `set-resources` hides the profile's."""
    rules = {job.rule.name for job in workflow.dag.needrun_jobs()} & set(stages.names())
    computing = {rule for rule in rules if stages.load(rule).devices != "processors"}
    given = workflow.resource_settings.overwrite_resources
    asking = {rule for rule in computing if {"slurm_partition", "gres", "gpu"} & set(given.get(rule, ()))}
    hidden = any(word.startswith("--set-resources") for word in sys.argv)
    return sorted(computing - asking) if asking or hidden else []


def repeat_only_what_may_help():
    """Have no job repeated whose log ends with what its user has to correct; Snakemake's `retries:` asks for no reason.

    Repeated are jobs that were killed or interrupted, ran out of memory, or ended by an error that nobody expected.
    """
    handle = workflow.scheduler._handle_error

    def handle_error(job, **options):
        fetches = not job.is_group() and job.rule.name.startswith("fetch")  # a network may be there again
        if not job.is_group() and not fetches and is_final([*map(str, job.log)]):
            job.attempt = job.restart_times + 1
        handle(job, **options)

    workflow.scheduler._handle_error = handle_error


def submit_without_limit():
    """Submit as many jobs a second as there are, if the user names no limit; Snakemake's own is 100.

    Under a limit, every job that finishes makes Snakemake look at all ready jobs once more each second, until the end.
    --max-jobs-per-timespan has no value for none, and Snakemake ends no sooner than the time that it names.
    """
    limit = workflow.scheduling_settings.max_jobs_per_timespan
    if limit is not None and (limit.max_jobs, limit.timespan) == (100, 1):
        workflow.scheduler.job_rate_limiter = None


def have_handlers_called(start, success, error):
    """Have Snakemake call the handlers of a module, of which it calls none; without the first jobs have no specs.

    A study could call them in its own, but snakedeploy writes a Snakefile without.
    """
    if not workflow.modifier.is_main_snakefile():
        before, failed = workflow._onstart, workflow._onerror
        workflow._onstart, workflow._onsuccess = lambda log: (before(log), start()), lambda log: success()
        workflow._onerror = lambda log: (failed(log), error())
