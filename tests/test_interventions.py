"""Rows of experiments: targets are read, and every score is a product over groups of rows."""

import json
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln, multigammaln

import gpn_bayes as gpn
from gpn_bayes import Dataset, scores
from tests.references import REFERENCE

