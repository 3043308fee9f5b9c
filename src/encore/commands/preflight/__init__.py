"""What a run needs, estimated before it starts: downloads, disk, memory, hours and energy, and what is there already.

The plan says how much each job has to do (``amounts.py``); how long that takes, and how many bytes it fills, was fitted
to finished jobs (``cpu.yaml``, made by ``encore calibrate``). Nothing here imports torch.
"""
