"""Every address of the product; apps bring their own under their prefix."""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path

from resumeapp import health, reference
from resumeapp.api import api

handler404 = "approvals.views.errors.page_not_found"

urlpatterns = [
    path("api/v1/docs/conventions", reference.conventions, name="conventions"),
    path("api/v1/", api.urls),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.metrics, name="metrics"),
    path(
        "sign-in/",
        LoginView.as_view(template_name="sign_in.html", redirect_authenticated_user=True),
        name="sign_in",
    ),
    path("sign-out/", LogoutView.as_view(), name="sign_out"),
    path("", include("approvals.urls")),
]
