"""Estimators of scikit-learn, converted; onnxruntime's answers are held against scikit-learn's too."""

REQUIRES = "skl2onnx onnxruntime scikit-learn"
WHAT = "eight estimators of scikit-learn, equal to scikit-learn"
TOLERANCE = 1e-4


def prepare():
    import numpy
    import onnxruntime
    from skl2onnx import to_onnx
    from sklearn import datasets, ensemble, linear_model, naive_bayes, neighbors, pipeline, preprocessing, svm, tree

    x, y = datasets.load_iris(return_X_y=True)
    x = x.astype(numpy.float32)
    estimators = [linear_model.LogisticRegression(max_iter=500), tree.DecisionTreeClassifier(random_state=0),
                  ensemble.RandomForestClassifier(20, random_state=0), ensemble.GradientBoostingClassifier(n_estimators=20, random_state=0),
                  naive_bayes.GaussianNB(), neighbors.KNeighborsClassifier(), svm.SVC(probability=True, random_state=0),
                  pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression())]
    sessions = []
    for one in estimators:
        one.fit(x, y)
        sessions.append(onnxruntime.InferenceSession(to_onnx(one, x[:1], options={"zipmap": False}).SerializeToString()))

    def run():
        made = [session.run(None, {session.get_inputs()[0].name: x}) for session in sessions]
        for estimator, (labels, chances) in zip(estimators, made):
            assert (labels == estimator.predict(x)).all()
            numpy.testing.assert_allclose(chances, estimator.predict_proba(x), atol=1e-4)
        return made

    return run
