"""STAND-IN for a server that needs more memory than there is: waits until it is confined, then grows until it is killed."""

import os
import time

CONFINED = "/run/lab-confined"

with open("/proc/self/comm", "w", encoding="ascii") as name:
    name.write("sglang::schedul")

while not os.path.exists(CONFINED):
    time.sleep(0.05)

held = []
while True:
    held.append(b"x" * (1 << 20))
