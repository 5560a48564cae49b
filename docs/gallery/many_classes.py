"""More than two classes

Each class is one question, this class or another, and gets bins of its own; all guarantees hold at
once. Here the classes are the remainders of handwritten digits divided by three.

Picture: Guaranteed intervals of three bins for each of three classes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from calibrant import ClassWiseCalibrator

X, digit = load_digits(return_X_y=True)
X_train, X_new, y_train, y_new = train_test_split(X, digit % 3, test_size=0.6, random_state=0)
scores = GaussianNB().fit(X_train, y_train).predict_proba(X_new)

guarantees = ClassWiseCalibrator(n_bins=3).fit(scores, y_new).guarantee_
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for number in range(3):
    guarantee = guarantees.guarantees[number]
    half = [guarantee.value - guarantee.lower, guarantee.upper - guarantee.value]
    at = np.arange(len(guarantee.value)) + 0.15 * (number - 1)
    axes.errorbar(at, guarantee.value, half, fmt="o", capsize=3, label=f"digit mod 3 = {number}")
axes.set(xlabel="bin of the class's score", ylabel="rate of the class")
axes.legend(frameon=False)

plt.show()
