"""What is asked of autograd graphs: which backwards go through one, and whether all of it is made anew."""
