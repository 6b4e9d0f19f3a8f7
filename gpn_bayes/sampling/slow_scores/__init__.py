"""What slow scores need besides the road that all take: which parent sets get a score, and weights to a target score.

Nothing here is run where scores have a closed form, as under BGe.
"""
