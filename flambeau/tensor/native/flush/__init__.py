"""Running a segment whose plan is known, by native code.

Keeps     does what engine/run.py does while nothing surprises; whatever else is left to it, whole
          and before anything happened.
Touches   nothing itself.
Not here  plans (engine/planning), recording (the files above)."""
