"""Running a script as if its files read otherwise, and writing down what it computes. `overlay` also runs alone, in processes that
the script starts."""
