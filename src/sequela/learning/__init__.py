"""Learning theta from samples by maximising the penalised likelihood (section 5 of the paper)."""
