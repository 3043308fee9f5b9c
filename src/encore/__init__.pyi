from encore.errors import EncoreError as EncoreError
from encore.products.data_frames import read_run as read_run
from encore.products.data_frames import read_scores as read_scores
from encore.products.data_frames import read_table as read_table

__version__: str
HOME: str
