"""What teachers say of training queries and passages, computed once and kept for every student."""
