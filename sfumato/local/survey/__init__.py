"""Surveys with local privacy: a public design, reports of people, and what they tell."""

from sfumato.local.survey.design import Design, design_survey, read_design
from sfumato.local.survey.reports import Tallied, read_reports, respond, respond_once
from sfumato.local.survey.result import SurveyResult, estimate_survey, simulate

__all__ = [
    "Design",
    "SurveyResult",
    "Tallied",
    "design_survey",
    "estimate_survey",
    "read_design",
    "read_reports",
    "respond",
    "respond_once",
    "simulate",
]
