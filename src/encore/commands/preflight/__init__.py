"""What a run needs, estimated before it starts: downloads, disk, memory, hours and energy, and what is there already.

All of it follows from counts (parameters, tokens, documents, floating-point operations) and from how fast a machine is.
Nothing here imports torch but ``measuring.py``, which a calibration alone needs.
"""
