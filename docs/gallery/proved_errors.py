"""Where is my model miscalibrated?

`audit` tests score ranges of many sizes, which share one error budget. The plot shows the ranges in
which the true rate is shown to differ from the mean score, with 95% confidence for all ranges
together.

Picture: Rates whose limits don't touch the diagonal: below it at low scores, above it at high
scores.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from calibrant import audit

plt.style.use("calibrant.draw.plain")

X, digit = load_digits(return_X_y=True)
X_train, X_new, y_train, y_new = train_test_split(X, digit % 2 == 0, test_size=0.6, random_state=0)
forest = RandomForestClassifier(30, max_depth=3, random_state=0).fit(X_train, y_train)
scores = forest.predict_proba(X_new)[:, 1]

table = audit(y_new, scores).table
proved = table.error > 0
figure, axes = plt.subplots()
axes.errorbar(
    table.mean_score[proved],
    table.rate[proved],
    [(table.rate - table.lower)[proved], (table.upper - table.rate)[proved]],
    fmt="o",
    color="C1",
    label="proved wrong",
)
axes.plot([0, 1], [0, 1], "--", color="0.5", label="rate = score")
axes.set(xlabel="mean score in the range", ylabel="rate in the range")
axes.legend()

plt.show()
