"""What an answer is: marked data, what was not recorded, what was left out, and how to go on."""
