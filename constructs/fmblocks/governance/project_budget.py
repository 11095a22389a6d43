"""What a project may cost a month, and who hears of it."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_budgets as budgets
from constructs import Construct

from fmblocks._edge import check_arguments, typed
from fmblocks.governance import rules

# Kind and per cent of the limit. Five are the most (API CreateBudget).
_TOLD = (("ACTUAL", 80), ("ACTUAL", 100), ("FORECASTED", 100))


class ProjectBudget(cdk.Resource):
    """A monthly cost budget over everything that carries a tag, told at 80 and 100 per cent and by forecast.

    The tag has to be activated once as a cost allocation tag, in the account that pays (Billing User Guide, *Activating
    user-defined cost allocation tags*): before, the budget sees nothing. What carries no tags is not in it: traffic
    between zones, support, parts of Marketplace. It tells, and stops nothing.

    In place: limit. Replaces: addresses.

    Args:
        monthly_usd: the limit.
        email: up to ten addresses.
        tag_key: as it stands on resources. Default: fmblocks:project.
        tag_value: its value: the project's name.

    Raises:
        FindingsError: rule FMB-137.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        monthly_usd: float,
        email: Sequence[str],
        tag_value: str,
        tag_key: str = "fmblocks:project",
    ) -> None:
        super().__init__(scope, id)
        told = {"monthly_usd": monthly_usd, "email": email, "tagged": True}
        check_arguments(self, rules.BUDGET, told)
        subscribers = [budgets.CfnBudget.SubscriberProperty(subscription_type="EMAIL", address=one) for one in email]
        self.resource = budgets.CfnBudget(
            self,
            "Resource",
            budget=budgets.CfnBudget.BudgetDataProperty(
                budget_type="COST",
                time_unit="MONTHLY",
                budget_limit=budgets.CfnBudget.SpendProperty(amount=monthly_usd, unit="USD"),
                # The prefix says whose tag it is. Values are alternatives: one tag alone is a project's.
                cost_filters={"TagKeyValue": [f"user:{tag_key}${tag_value}"]},
            ),
            notifications_with_subscribers=[
                budgets.CfnBudget.NotificationWithSubscribersProperty(
                    notification=budgets.CfnBudget.NotificationProperty(
                        comparison_operator="GREATER_THAN",
                        notification_type=kind,
                        threshold=share,
                        threshold_type="PERCENTAGE",
                    ),
                    subscribers=subscribers,
                )
                for kind, share in _TOLD
            ],
        )
