"""Addresses in texts are shown without logins and signatures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.addresses import HIDDEN, has_secret, without_secrets

PLAIN = st.text(st.characters(exclude_categories=("Z", "C"), exclude_characters="/@:&;?=\"'"), min_size=1)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cannot use s3://AKIA1:s3cr3t@bucket/in: 403", f"cannot use s3://{HIDDEN}@bucket/in: 403"),
        ("s3a://AKIA1:s3cr3t/+x@bucket/in", f"s3a://{HIDDEN}@bucket/in"),
        ("sqlite:///a and postgresql://me:s3cr3t@host/db", f"sqlite:///a and postgresql://{HIDDEN}@host/db"),
        ("(https://a.net/in?sv=1&sig=s3cr3t&comp=list)", f"(https://a.net/in?sv=1&sig={HIDDEN}&comp=list)"),
        (
            "https://b.s3.amazonaws.com/k?X-Amz-Credential=s3cr3t&X-Amz-Security-Token=s3cr3t&X-Amz-Signature=s3cr3t",
            f"https://b.s3.amazonaws.com/k?X-Amz-Credential={HIDDEN}&X-Amz-Security-Token={HIDDEN}&X-Amz-Signature={HIDDEN}",
        ),
        ("sc://host:15002/;token=s3cr3t;use_ssl=true", f"sc://host:15002/;token={HIDDEN};use_ssl=true"),
    ],
)
def test_secrets_of_addresses_in_a_text_are_hidden(text: str, shown: str):
    assert has_secret(text)
    assert without_secrets(text) == shown
    assert without_secrets(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "abfss://box@account.dfs.core.windows.net/in",
        "hdfs://me@name:8020/in",
        "s3://bucket/in/signature=1",
        "s3://bucket: see me@host",
        "kafka at host:9092, as me@host",
        "out?x=1",
    ],
)
def test_other_texts_stay_as_they_are(text: str):
    assert not has_secret(text)
    assert without_secrets(text) == text


@given(scheme=st.sampled_from(["s3", "S3A", "gs", "https", "postgresql"]), user=PLAIN, password=PLAIN)
def test_no_password_is_left_whatever_it_is(scheme: str, user: str, password: str):
    assert without_secrets(f"see {scheme}://{user}:{password}@host/x") == f"see {scheme}://{HIDDEN}@host/x"


@given(name=st.sampled_from(["sig", "Signature", "X-Goog-Credential"]), value=PLAIN)
def test_no_signature_is_left_whatever_it_is(name: str, value: str):
    assert without_secrets(f"https://host/x?{name}={value}") == f"https://host/x?{name}={HIDDEN}"
