"""The attacks S1, S2, S3, S5 and S6 over the real engine; each also succeeds where the test takes the guard away.

docs/enemies.md lists them. S4, liars, is in tests/deploy/hub.
"""
