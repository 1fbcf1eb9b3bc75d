# %% [markdown]
# # Dyck-1 in two layers
#
# A transformer that decides whether parentheses are well nested. Nobody trained it: each weight has a reason.
# The lecture takes three quarters of an hour. Look at the output of a cell first; the text below it says what
# you saw.
#
# ## The question (five minutes)

# %%
import transformist as tf

model = tf.recipe("dyck-1").build(max_length=1000)
for x in ["(()())", "())(", ")(", "((", ""]:
    print(f"{x!r:9} {model(x, 'exact')}")

# %% [markdown]
# The model accepts `(()())` and the empty string. It rejects `())(` and `)(`, although both have as many opening
# as closing brackets: counting the whole string is not enough. Every prefix counts.
#
# ## The model as a whole (five minutes)

# %%
slots = list(model.weights_table()["embedding", "vectors"].columns)
print(model)
print(len(model.layers), "layers,", len(slots), "slots, non-zero weights:", model.nonzero)
print(slots)
print("heads of each layer:", [len(layer.heads) for layer in model.layers])
assert all(len(layer.heads) == 1 for layer in model.layers)

# %% [markdown]
# The model has 2 layers with 1 head each. The residual stream has 6 slots, and every slot has a name. Of all
# weights, 26 are not zero, so we can look at each of them. The circuit shows what reads and writes each slot. (A cell
# with a picture needs matplotlib: `pip install 'transformist[figures]'`.)


# %%
def picture(draw):
    """Return the figure that `draw` makes, with its description printed; None without matplotlib."""
    try:
        figure = draw()
    except tf.TransformistError as error:
        print(error)
        return None
    print(figure.get_label())
    return figure


picture(model.plot)

# %% [markdown]
# ## The first layer: the balance of each prefix (fifteen minutes)

# %%
trace = model.run("())(", arithmetic="exact")
for name in ("sign", "balance"):
    print(f"{name:8}", [str(value) for value in trace[name]])
for row in trace.attention(layer=0, head=0):
    print(" ".join(f"{value!s:>4}" for value in row))
assert [str(value) for value in trace["sign"]] == ["0", "1", "-1", "-1", "1"]
assert [str(value) for value in trace["balance"]] == ["0", "1/2", "0", "-1/4", "0"]

# %% [markdown]
# An opening bracket has sign 1, a closing bracket has sign -1, and the first row, BOS, has 0. The head gives the
# same weight to every row up to its own. In the row of the third bracket each of the 4 rows gets 1/4. So the slot
# `balance` holds the mean of the signs: -1/4 there, as one bracket too many was closed.
#
# The same weights as a picture, from each query below to its keys above:

# %%
picture(lambda: trace.plot_attention(layer=0, head=0))

# %% [markdown]
# A mean is as good as a sum here. It is 0 where the sum is 0, and below 0 where the sum is below 0.

# %%
for name in ("imbalance", "violation"):
    print(f"{name:9}", [str(value) for value in trace[name]])
for matrix in ("W_1", "b_1", "W_2"):
    print(matrix)
    for cells in model.weights_table()["layer 0 feed-forward", matrix].grid():
        print(" ".join(f"{cell:>10}" for cell in cells))

# %% [markdown]
# The feed-forward network computes two things from the balance b. `imbalance` is its absolute value, from the hidden
# units 2 and 3: their rows of W_1 are 1 and -1 at `balance`, so they are ReLU(b) and ReLU(-b), and W_2 adds them up.
# `violation` is 1 where the balance is below 0, and 0 elsewhere. This step comes from the hidden units 0 and 1 with
# output weights 2048 and -2048 in W_2: their difference is a steep ramp.
#
# ## The second layer: was there any violation? (ten minutes)

# %%
for name in ("violations", "imbalance", "accept"):
    print(f"{name:10}", [str(value) for value in trace[name]])
assert str(trace["violations"][4]) == "1/5" and str(trace["imbalance"][4]) == "0"
assert not trace.answer

# %% [markdown]
# The whole run, step by step, in one picture:

# %%
picture(trace.plot)

# %% [markdown]
# The second head takes the mean of `violation`, again over all rows so far. In the last row the mean is 1/5: the
# imbalance there is 0, but the string is rejected, because 1 of the 5 rows is a violation. The slot `accept` is 1
# where both numbers are 0, and the read-out looks at it in the last row.
#
# Is the second layer necessary in this model? Switch its head off.


# %%
def well_nested(x):
    """Return True if x is in Dyck-1, by counting."""
    height = 0
    for symbol in x:
        height += 1 if symbol == "(" else -1
        if height < 0:
            return False
    return height == 0


without = tf.ablate(model, head=(1, 0))
failed = tf.check(without, well_nested, max_length=10)
print(failed.counterexample)
assert failed.counterexample.input == ")("
assert without(")(") and not model(")(")

# %% [markdown]
# Without the second head, the model accepts `)(`. It then sees only that the last balance is 0.
#
# ## How far can we trust it? (ten minutes)

# %%
verdict = tf.check(model, well_nested, max_length=10, arithmetic="float32")
print(verdict.covered, verdict.cases, "strings:", bool(verdict))
assert verdict and verdict.cases == 2**11 - 1

# %% [markdown]
# All 2047 strings up to length 10 get the right answer in float32. There are too many strings of length 1000 to
# try. A certificate bounds every rounding error instead, from the weights alone.

# %%
found = tf.certify(model, "float32")
coarse = tf.certify(model, "float16")
print("float32:", found.holds, "to length", found.largest_length)
print("float16:", coarse.holds)
limit = found.limiting
print(f"{limit.place}: {limit.what} {limit.error:.6f}, allowed {limit.allowed:.6f}")
assert found.holds and found.largest_length == 1000 and found.grade == 1
assert limit.error < limit.allowed and not coarse.holds

# %% [markdown]
# In float32 the model is right on every string to length 1000. The tightest place is the comparison in the second
# layer: its error is at most 0.000120, and 0.000244 is allowed. In float16 there is no certificate for these weights.
#
# ## Questions to take home
#
# - Why does the mean in the first layer include BOS?
# - Which weight must change for strings longer than the model was built for?
# - What happens if you switch off the first head? Try `tf.ablate(model, head=(0, 0))`.
