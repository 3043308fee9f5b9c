"""Parts of ``docs/judge_again.py``, which share no code with Encore."""
