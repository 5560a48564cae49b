"""Is the model of use?

The net benefit counts true alarms, minus false ones with a weight that depends on the threshold.
The bands hold for all thresholds at once, so you may look at the whole curve and then choose.

Picture: Net benefit of two models against the threshold probability with bands, above the curves of
acting on all and on none.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from calibrant import NetBenefitDisplay

X, benign = load_breast_cancer(return_X_y=True)
ill = benign == 0
logistic = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:150, :10], ill[:150])
stump = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X[:150], ill[:150])
models = {
    "logistic": logistic.predict_proba(X[150:, :10])[:, 1],
    "stump": stump.predict_proba(X[150:])[:, 1],
}

NetBenefitDisplay.from_predictions(ill[150:], models)

plt.show()
