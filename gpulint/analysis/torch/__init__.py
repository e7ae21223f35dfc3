"""What torch and the libraries around it do, as data: the words that decide. Imports nothing."""
