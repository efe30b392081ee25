"""What a newcomer sees first: the curator on made-up data, and a tour of the calculus."""
