"""`truesource compare`: many models, or the models of several runs, in one table with paired differences."""
