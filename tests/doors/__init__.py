"""The ways in which redis-py's users reach an emulator, each compared with redis-py on the live server."""
