"""The audit: is each file behind what is published what its manifest says, and made from what the plan says?"""
