from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0002_links"),
    ]

    operations = [
        migrations.AlterField(
            model_name="vote",
            name="renderer",
            field=models.CharField(max_length=120),
        ),
    ]
