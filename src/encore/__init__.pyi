from encore.datasets.foreign.data_frames import Collection as Collection
from encore.errors import EncoreError as EncoreError
from encore.products.data_frames import read_run as read_run
from encore.products.data_frames import read_scores as read_scores
from encore.products.data_frames import read_table as read_table
from encore.storage.release import __version__ as __version__
