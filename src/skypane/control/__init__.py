"""Pure control policies: exchange, splitting, placement, scheduling, elasticity and admission."""
