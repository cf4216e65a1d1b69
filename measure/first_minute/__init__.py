"""From an empty environment to the first answer: the environment, the programs, and the steps of each."""
