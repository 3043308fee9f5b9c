from encore.errors import EncoreError as EncoreError
from encore.results import read_run as read_run
from encore.results import read_scores as read_scores
from encore.results import read_table as read_table
