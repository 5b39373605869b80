from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0003_renderer_version"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="approvalrequest",
            index=models.Index(fields=["tenant", "-opened_at", "-id"], name="request_newest"),
        ),
    ]
