# What a developer runs. Each target works in the virtual environment that is active.
.PHONY: mutants

# Mutation testing of the modules listed in pyproject.toml ([tool.mutmut]); see docs/testing.md.
mutants:
	pip install -q -e ".[test,mutants]"
	nice -n 15 python tests/mutants/run.py $(MUTANTS)
