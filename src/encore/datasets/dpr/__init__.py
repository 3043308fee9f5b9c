"""Open-domain questions over Wikipedia in passages of 100 words, as DPR publishes them (Karpukhin et al. 2020).

Three kinds of files: passages, training questions with passages of three kinds, and questions with answers alone.
"""
