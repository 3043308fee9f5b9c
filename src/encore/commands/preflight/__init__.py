"""What a run needs, estimated before it starts: missing jobs, downloads, disk, memory and GPU-hours.

``amounts.py`` counts from the plan how much each job has to do, ``costs.py`` says what a unit of that takes. Nothing
here imports torch.
"""
