"""AWS profiles, which obstore does not read: `~/.aws/credentials` and `~/.aws/config`, as the AWS command line does."""

import configparser
import importlib
import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grebe.errors import InvalidConfig

# What says by itself who is asking, in options or environment; a profile is for those who give none of it.
_IDENTITY = {
    "access_key_id",
    "secret_access_key",
    "session_token",
    "token",
    "skip_signature",
    "role_arn",
    "web_identity_token_file",
}
_IDENTITY |= {"container_credentials_relative_uri", "container_credentials_full_uri"}
# Kinds of profile that take the protocols of a whole SDK.
_NEEDS_SDK = {"role_arn", "sso_session", "sso_start_url", "credential_process", "source_profile"}


def with_profile(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, Any]]:
    """The options with what the profile adds to them, and further arguments for the store: a provider of credentials, or none.

    The profile is the one that the option `profile` or `AWS_PROFILE` names, else `default`; options and environment come first.
    """
    settings = dict(options)
    asked = settings.pop("profile", settings.pop("aws_profile", os.environ.get("AWS_PROFILE", "")))
    given = {
        name.removeprefix("aws_") for name in (*settings, *(n.lower() for n in os.environ if n.startswith("AWS_")))
    }
    profile = _read_profile(asked or "default")
    if asked and not profile and not given & _IDENTITY:
        raise InvalidConfig(f"no AWS profile {asked!r} in ~/.aws/config or ~/.aws/credentials", detail="AWS_PROFILE")
    if "region" in profile and not given & {"region", "default_region"}:
        settings["region"] = profile["region"]
    if "endpoint_url" in profile and not given & {"endpoint", "endpoint_url"}:
        settings["endpoint"] = profile["endpoint_url"]
    if given & _IDENTITY:
        return settings, {}
    if "aws_access_key_id" in profile and "role_arn" not in profile:
        keys = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
        settings |= {key: profile[key] for key in keys if key in profile}
    elif needed := sorted(_NEEDS_SDK & profile.keys()):
        return settings, {"credential_provider": _sdk_provider(asked, needed)}
    return settings, {}


def _read_profile(name: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for variable, default, section in (
        ("AWS_CONFIG_FILE", "config", name if name == "default" else f"profile {name}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials", name),
    ):
        file = Path(os.environ.get(variable) or Path.home() / ".aws" / default).expanduser()
        parser = configparser.RawConfigParser()
        try:
            parser.read(file, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError, OSError):
            # The parser's own message quotes the line, which may be the one with the secret.
            raise InvalidConfig(f"{file} cannot be read as an AWS profile file", detail="AWS_PROFILE") from None
        if parser.has_section(section):
            found |= dict(parser.items(section))
    return found


def _sdk_provider(asked: str, needed: list[str]) -> Any:
    if importlib.util.find_spec("boto3") is None:
        raise InvalidConfig(
            f"the AWS profile {asked or 'default'!r} uses {', '.join(needed)}, for which boto3 has to be installed; "
            "install it, or give access_key_id and secret_access_key",
            detail="AWS_PROFILE",
        )
    session = importlib.import_module("boto3").Session(profile_name=asked or None)
    return importlib.import_module("obstore.auth.boto3").Boto3CredentialProvider(session)
