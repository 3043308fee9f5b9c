"""Other people's files: the forms that they are written in, what is recognised of a folder, and its conversion."""
