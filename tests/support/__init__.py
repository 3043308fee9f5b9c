"""What several folders of tests share; none of it is a test."""
