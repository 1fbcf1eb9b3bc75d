# %% [markdown]
# # Write your first construction
#
# A construction is a set of weights that you choose, and a claim about them. Here the claim is: accept a string over
# a and b if it has as many a as b.
#
# The plan: each a counts plus one and each b minus one, and a head takes the mean. The mean is zero if and only if
# the numbers are equal. A feed-forward network takes the absolute value of the mean, and the read-out compares it with a threshold.
#
# ## Slots and symbols

# %%
from fractions import Fraction

import transformist as tf

stream = tf.Stream(("sign", "balance", "imbalance"))
words = {"BOS": {}, "a": {"sign": 1}, "b": {"sign": -1}}
embedding = tf.Embedding.of(stream, words, front=["BOS"])
print(embedding.vectors)

# %% [markdown]
# A slot is a named coordinate of the residual stream. `sign` is what a symbol writes; BOS, which stands before every
# input, writes 0 everywhere. The other two slots are empty so far: a layer writes to them.
#
# ## A head that takes a mean

# %%
mean = tf.Attention(
    W_Q=[[0, 0, 0]], W_K=[[0, 0, 0]], W_V=[[1, 0, 0]], W_O=[[0], [1], [0]], mask="none"
)
written = mean([[0, 0, 0], [1, 0, 0], [1, 0, 0], [-1, 0, 0]])
print(written)
assert all(row[1] == 1 / 4 for row in written)

# %% [markdown]
# Queries and keys are 0, so all scores are equal and softmax gives each row the same weight. On BOS, a, a, b the
# head writes (0 + 1 + 1 - 1)/4 = 1/4 to `balance`, in every row.
#
# ## A network that takes an absolute value

# %%
absolute = tf.FeedForward(W_1=[[0, 1, 0], [0, -1, 0]], W_2=[[0, 0], [0, 0], [1, 1]])
for x in (-3, 0, 3):
    print(x, absolute([0, x, 0]))
    assert absolute([0, x, 0]).tolist() == [0, 0, abs(x)]

# %% [markdown]
# The two hidden units are ReLU(x) and ReLU(-x). Their sum is |x|: 3 for -3 and for 3, and 0 for 0.
#
# ## The model


# %%
def equal_counts(N, network):
    """Build the model for inputs of at most N symbols."""
    return tf.Transformer(
        stream=stream,
        embedding=embedding,
        layers=(tf.Layer(heads=(mean,), feed_forward=network),),
        read_out=tf.Binary(W_out=[[0, 0, -1]], b_out=[Fraction(1, 2 * (N + 1))]),
        max_length=N,
    )


model = equal_counts(12, absolute)
print(model("abba"), model("aab"), model(""))
assert model("abba") and model("") and not model("aab")
print(*model.run("aab", "exact")["imbalance"])
assert model.read_out.b_out[0] == Fraction(1, 2 * (12 + 1))

# %% [markdown]
# If the numbers differ, |balance| is at least 1/(n + 1), as there are n + 1 rows with BOS. So the threshold, half-way
# at 1/(2(N + 1)), separates equal from unequal for every length n up to N. For `aab` the imbalance is 1/4.
#
# ## Check it against the definition


# %%
def reference(x):
    """Return True if x has as many a as b."""
    return x.count("a") == x.count("b")


for arithmetic in ("exact", "float32"):
    verdict = tf.check(model, reference, max_length=12, arithmetic=arithmetic)
    print(arithmetic, verdict.covered, verdict.cases, verdict.held)
    assert verdict.held and verdict.cases == 2**13 - 1 == 8191

# %% [markdown]
# All 8191 strings to length 12 are right, in exact arithmetic and in float32. A check finds a mistake as well: leave
# out the second hidden unit.

# %%
mistaken = tf.FeedForward(W_1=[[0, 1, 0]], W_2=[[0], [0], [1]])
verdict = tf.check(equal_counts(12, mistaken), reference, max_length=12)
print(verdict.counterexample)
assert not verdict.held and verdict.counterexample.input == "b"

# %% [markdown]
# The first counterexample is `b`: its balance is negative, and ReLU(x) alone is 0 there.
#
# ## Certify it for long inputs

# %%
long = equal_counts(1000, absolute)
certificate = tf.certify(long, "float32")
print(certificate.holds, certificate.grade, certificate.largest_length)
assert certificate.holds and certificate.grade == 1 and certificate.largest_length == 1000

# %% [markdown]
# In float32 the certificate has grade 1: a proof that the answers are those of exact arithmetic for every string to
# length 1000. A coarse format is refused.

# %%
refused = tf.certify(equal_counts(63, absolute), "float8_e4m3")
print(refused.holds, refused.largest_length)
print(refused)
assert not refused.holds and refused.largest_length == 50

# %% [markdown]
# In float8_e4m3, with N = 63, no certificate holds for all lengths; one holds for inputs of at most 50 symbols. The
# text names the place where the margin ends: the read-out.
#
# ## See what a part is for

# %%
ablated = tf.ablate(model, slot="imbalance", by="zero")
print(ablated("aab"), model("aab"))
assert ablated("aab") and not model("aab")
assert tf.check(ablated, lambda _: True, max_length=12)

# %% [markdown]
# Without `imbalance` the model accepts every string, also `aab`.
