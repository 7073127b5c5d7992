"""The metrics of the paper: pure functions on arrays.

They never see a model: callers pass scores, uncertainties and labels.
"""

from hedged.metrics.calibration import Reliability as Reliability
from hedged.metrics.calibration import brier_score as brier_score
from hedged.metrics.calibration import negative_log_likelihood as negative_log_likelihood
from hedged.metrics.calibration import reliability as reliability
from hedged.metrics.clustering import adjusted_rand_index as adjusted_rand_index
from hedged.metrics.clustering import bcubed_f1 as bcubed_f1
from hedged.metrics.clustering import pairwise_f1 as pairwise_f1
from hedged.metrics.identification import Vote as Vote
from hedged.metrics.identification import knn_accuracy as knn_accuracy
from hedged.metrics.identification import knn_correct as knn_correct
from hedged.metrics.organisation import AxisAlignment as AxisAlignment
from hedged.metrics.organisation import Centroids as Centroids
from hedged.metrics.organisation import DigitReading as DigitReading
from hedged.metrics.organisation import Turn as Turn
from hedged.metrics.organisation import axis_alignment as axis_alignment
from hedged.metrics.organisation import best_turn as best_turn
from hedged.metrics.organisation import class_centroids as class_centroids
from hedged.metrics.organisation import digit_reading as digit_reading
from hedged.metrics.organisation import mean_run_length as mean_run_length
from hedged.metrics.organisation import run_lengths as run_lengths
from hedged.metrics.organisation import shared_digit_count as shared_digit_count
from hedged.metrics.pairs import Pairs as Pairs
from hedged.metrics.pairs import all_pairs as all_pairs
from hedged.metrics.pairs import balanced_pairs as balanced_pairs
from hedged.metrics.pairs import random_pairs as random_pairs
from hedged.metrics.pairs import score_pairs as score_pairs
from hedged.metrics.rejection import RejectCurve as RejectCurve
from hedged.metrics.rejection import pair_reject_curve as pair_reject_curve
from hedged.metrics.rejection import reject_curve as reject_curve
from hedged.metrics.rejection import twin_order as twin_order
from hedged.metrics.rejection import uncertainty_auroc as uncertainty_auroc
from hedged.metrics.repeats import Repeated as Repeated
from hedged.metrics.repeats import repeat as repeat
from hedged.metrics.uncertainty import UncertaintyCurve as UncertaintyCurve
from hedged.metrics.uncertainty import ap_curve as ap_curve
from hedged.metrics.uncertainty import balanced_accuracy_curve as balanced_accuracy_curve
from hedged.metrics.uncertainty import equal_count_bins as equal_count_bins
from hedged.metrics.uncertainty import is_constant as is_constant
from hedged.metrics.uncertainty import kendall_tau as kendall_tau
from hedged.metrics.uncertainty import knn_curve as knn_curve
from hedged.metrics.verification import Threshold as Threshold
from hedged.metrics.verification import accepted_counts as accepted_counts
from hedged.metrics.verification import average_precision as average_precision
from hedged.metrics.verification import balanced_accuracy as balanced_accuracy
from hedged.metrics.verification import best_threshold as best_threshold
from hedged.metrics.verification import precision_recall as precision_recall
from hedged.metrics.verification import roc_auc as roc_auc
