# %% [markdown]
# # Write your first program, and certify it
#
# A program says what to compute. The compiler turns it into weights, and a certificate states how far these weights
# can be trusted.
#
# ## The program
#
# Accept a string if more than half of its symbols are a.

# %%
import transformist as tf


@tf.program(alphabet="ab")
def majority(x):
    """Accept where most symbols are a."""
    return ((x == "a").mean("none") > "1/2").accept()


print(majority("aab"), majority("ab"))
assert majority("aab") and not majority("ab")

# %% [markdown]
# A program is a function of Python, and runs without weights. A tie is not a majority: `ab` is rejected.
#
# ## The weights

# %%
model = tf.compile(majority, max_length=500)
print(model, "non-zero weights:", model.nonzero)
print(model.weights_table())
assert len(model.layers) == 1

# %% [markdown]
# One head takes the mean over the whole string, and the read-out compares the mean with a threshold. The model has
# 1 layer.
#
# ## Check


# %%
def reference(x):
    """Return True if x has more a than b."""
    return x.count("a") > x.count("b")


verdict = tf.check(model, reference, max_length=10, arithmetic="float32")
print(verdict.covered, verdict.cases, bool(verdict))
assert verdict and verdict.cases == 2047
mistaken = tf.check(model, lambda x: x.count("a") >= x.count("b"), max_length=10)
print(repr(mistaken.counterexample.input))
assert not mistaken and mistaken.counterexample.input == ""

# %% [markdown]
# The model agrees with a plain count on all 2047 strings to length 10. A reference that accepts ties is refuted by
# the empty string, where both counts are equal.
#
# ## Certify

# %%
certificate = tf.certify(model, "float32")
print(certificate.holds, certificate.grade, certificate.largest_length)
assert certificate.holds and certificate.grade == 1 and certificate.largest_length == 500

# %% [markdown]
# The certificate holds for every string to length 500, in float32. Its grade is 1: a proof, operation by operation.
# A format that is too coarse is refused when you compile.

# %%
try:
    tf.compile(majority, max_length=100_000, arithmetic="bfloat16")
except tf.TransformistError as refusal:
    message = str(refusal)
print(message)
assert "bfloat16" in message and "line " in message and "max_length=7 fits" in message

# %% [markdown]
# The message names the line of the program, and a remedy: in bfloat16, a model for length 7 fits.

# %%
short = tf.compile(majority, max_length=7, arithmetic="bfloat16")
verdict = tf.check(short, reference, max_length=7, arithmetic="bfloat16")
print(verdict.covered, verdict.cases, bool(verdict))
assert verdict and verdict.cases == 2**8 - 1 == 255

# %% [markdown]
# That model is right in bfloat16 on all 255 strings to length 7.
