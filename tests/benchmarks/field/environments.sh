#!/usr/bin/env bash
# Make an environment for each program that is compared, and write the variables that name them.
#
#   bash tests/benchmarks/field/environments.sh FOLDER
#   source FOLDER/variables.sh
#
# Python 3.11 and 3.9 must be on the path, for programs that need older ones, as python3.11 and python3.9. ARCO-GP has no
# package: where ARCO_GP_SOURCE names a checkout of chritoth/bci-arco-gp (a254884 was measured), it takes part. bnlearn
# takes part where there is an Rscript; BNLEARN_SOURCE may name a folder of its sources, for versions of R that the
# newest bnlearn doesn't take (4.9 was measured, on R 4.2). So does BiDAG, unless it can't be installed. It needs pcalg,
# and graph, RBGL and Rgraphviz of Bioconductor; RGRAPHVIZ_SOURCE, PCALG_SOURCE and BIDAG_SOURCE may name folders of
# their sources (2.42.0, 2.7-12 and 2.1.4 were measured), whose other dependencies R must have then. An environment that
# is there isn't made again.
set -euo pipefail
folder=$(mkdir -p "${1:?give a folder}" && cd "$1" && pwd)
variables="$folder/variables.sh"
: > "$variables"

environment() { # variable, folder, Python, packages…
    local variable=$1 home="$folder/$2" python=$3
    shift 3
    if ! [ -e "$home/done" ]; then
        if ! command -v "$python" > /dev/null; then
            echo "left out, for there is no $python: $variable" >&2
            return
        fi
        "$python" -m venv "$home"
        "$home/bin/pip" install --quiet "$@"
        touch "$home/done"
    fi
    echo "export $variable='$home/bin/python'" >> "$variables"
}

install_bidag() { # into the first library of R_LIBS; BiocManager takes packages from CRAN, too
    Rscript -e '
        for (name in c("graph", "RBGL", "Rgraphviz", "pcalg", "BiDAG")) {
            if (requireNamespace(name, quietly = TRUE)) next
            source <- Sys.getenv(paste0(toupper(name), "_SOURCE"))
            if (nzchar(source)) {
                install.packages(source, repos = NULL, type = "source", INSTALL_opts = "--no-docs")
            } else {
                if (!requireNamespace("BiocManager", quietly = TRUE)) install.packages("BiocManager")
                BiocManager::install(name, update = FALSE, ask = FALSE)
            }
        }
        library(BiDAG)'
}

environment SUMU_PYTHON sumu python3 sumu==0.1.2
environment CAUSAL_LEARN_PYTHON causal_learn python3 causal-learn==0.1.4.8
environment PGMPY_PYTHON pgmpy python3 pgmpy==1.1.2
environment GCASTLE_PYTHON gcastle python3.11 gcastle==1.0.4 torch==2.1.0 numpy==1.26.4
environment DIBS_PYTHON dibs python3.11 dibs-lib==1.3.3
if [ -n "${ARCO_GP_SOURCE:-}" ]; then
    environment ARCO_GP_PYTHON arco_gp python3.9 torch==2.1.0 numpy==1.24.3 scipy==1.10.1 networkx==3.1 gpytorch==1.11 \
        pandas==2.0.3 scikit-learn==1.3.2 gadjid==0.0.1 matplotlib==3.7.2
    echo "export ARCO_GP_SOURCE='$(cd "$ARCO_GP_SOURCE" && pwd)'" >> "$variables"
fi
if command -v Rscript > /dev/null; then
    library="$folder/R"
    export R_LIBS="$library"
    if ! [ -e "$library/done" ]; then
        mkdir -p "$library"
        Rscript -e 'if (!requireNamespace("jsonlite", quietly = TRUE)) install.packages("jsonlite", lib = Sys.getenv("R_LIBS"))'
        if [ -n "${BNLEARN_SOURCE:-}" ]; then
            R CMD INSTALL --no-docs --library="$library" "$BNLEARN_SOURCE"
        else
            Rscript -e 'install.packages("bnlearn", lib = Sys.getenv("R_LIBS"))'
        fi
        Rscript -e 'library(bnlearn); library(jsonlite)'
        touch "$library/done"
    fi
    echo "export RSCRIPT='$(command -v Rscript)' R_LIBS='$library'" >> "$variables"
    if install_bidag; then
        echo "export BIDAG_RSCRIPT='$(command -v Rscript)'" >> "$variables"
    else
        echo "left out, for BiDAG can't be installed: BIDAG_RSCRIPT" >&2
    fi
fi
cat "$variables"
