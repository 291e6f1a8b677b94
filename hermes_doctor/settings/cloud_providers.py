"""Resolve Anthropic, Azure and Bedrock, which have their own rules for key and address."""

from __future__ import annotations

import re
from typing import Any

from hermes_doctor.settings import custom_providers, urls
from hermes_doctor.settings.custom_providers import require_text
from hermes_doctor.settings.inputs import ABSENT, SettingInputs, section
from hermes_doctor.settings.outcome import RequestSettings, Unresolved
from hermes_doctor.settings.sourced_text import DEFAULT, LOGIN, Source, Text, stripped_text

ANTHROPIC = ("ANTHROPIC_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_API_KEY")
HOME = "https://api.anthropic.com"
_AWS = ("AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_PROFILE")
_AWS_NAMES = ("bedrock", "aws", "aws-bedrock", "amazon-bedrock", "amazon")


def has_aws(inputs: SettingInputs) -> bool:
    """Tell whether AWS credentials are set."""
    keys = inputs.getenv("AWS_ACCESS_KEY_ID") and inputs.getenv("AWS_SECRET_ACCESS_KEY")
    return bool(keys or inputs.getenv("AWS_BEARER_TOKEN_BEDROCK") or inputs.getenv("AWS_PROFILE"))


def anthropic(inputs: SettingInputs, model: dict[Any, Any]) -> RequestSettings:
    """Resolve Anthropic's own API or a compatible address."""
    address = require_text(model.get("base_url"), "model.base_url")
    address = address.like(address.rstrip("/"))
    own = stripped_text(model.get("provider")).lower() == "anthropic"
    trusted = own and urls.may_be_anthropic(address, inputs.release)
    url = (address if trusted else ABSENT) or Text(HOME, Source(DEFAULT, "anthropic"))
    key = _azure_key(inputs, model) if "azure.com" in url.lower() else anthropic_key(inputs)
    if not key:
        raise Unresolved("key", "no key for anthropic is set")
    ignored = [address] if address and not trusted else []
    return RequestSettings("anthropic", url, urls.MESSAGES, key, ignored)


def anthropic_key(inputs: SettingInputs) -> Text:
    """Return the first of Anthropic's variables that is set."""
    return next((found for name in ANTHROPIC if (found := inputs.getenv(name))), ABSENT)


def _azure_key(inputs: SettingInputs, model: dict[Any, Any]) -> Text:
    hints = [stripped_text(model.get(key)) for key in ("key_env", "api_key_env")]
    named = [inputs.getenv(hint) for hint in hints if hint]
    fixed = [inputs.getenv("AZURE_ANTHROPIC_KEY"), inputs.getenv("ANTHROPIC_API_KEY")]
    able = [*named, stripped_text(model.get("api_key")), *fixed]
    return next((one for one in able if one), ABSENT)


def azure_anthropic(inputs: SettingInputs, base_url: Text, key: Text) -> RequestSettings:
    """Resolve Anthropic's models at an Azure address of a fallback entry."""
    key = key or inputs.getenv("AZURE_ANTHROPIC_KEY") or inputs.getenv("ANTHROPIC_API_KEY")
    return RequestSettings("anthropic", base_url.like(base_url.rstrip("/")), urls.MESSAGES, key)


def azure(
    inputs: SettingInputs, model: dict[Any, Any], base_url: Text, key: Text
) -> RequestSettings:
    """Resolve Azure Foundry, whose address the operator must set."""
    own = stripped_text(model.get("provider")).lower() == "azure-foundry"
    address = stripped_text(model.get("base_url")) if own else ABSENT
    mode = (custom_providers.api_mode(inputs, model.get("api_mode")) if own else None) or urls.CHAT
    name = stripped_text(model.get("default")).lower().rpartition("/")[2]
    begins = tuple(inputs.release.topic("azure"))
    if mode != urls.MESSAGES and name.startswith(begins):
        mode = urls.RESPONSES
    variable = inputs.getenv("AZURE_FOUNDRY_BASE_URL")
    able = [one.like(one.rstrip("/")) for one in (base_url, address, variable) if one.rstrip("/")]
    if not able:
        raise Unresolved("address", "azure-foundry needs a base_url")
    url = able[0]
    if mode == urls.MESSAGES:
        url = url.like(re.sub(r"/v1/?$", "", url))
    entra = own and stripped_text(model.get("auth_mode")).lower() == "entra_id"
    if entra and not key and inputs.release.since(0, 15):
        key = Text("entra", Source(LOGIN, "Microsoft Entra ID"))
    key = key or inputs.environment_first("AZURE_FOUNDRY_API_KEY")
    if not key:
        raise Unresolved("key", "no key for azure-foundry: set AZURE_FOUNDRY_API_KEY")
    return RequestSettings("azure-foundry", url, mode, key, able[1:])


def bedrock(inputs: SettingInputs, model: dict[Any, Any], requested: str) -> RequestSettings:
    """Resolve AWS Bedrock, with the credentials that its own library finds."""
    if requested not in _AWS_NAMES and not has_aws(inputs):
        raise Unresolved("key", "no credentials of AWS are set")
    settings = section(inputs.config, "bedrock")
    able = [
        stripped_text(settings.get("region")),
        inputs.getenv("AWS_REGION"),
        inputs.getenv("AWS_DEFAULT_REGION"),
        Text("us-east-1", Source(DEFAULT, "bedrock")),
    ]
    region = next(one for one in able if one)
    name = stripped_text(model.get("default")).lower()
    claude = any(name.startswith(f"{r}anthropic.claude") for r in inputs.release.topic("bedrock"))
    bearer = inputs.release.since(0, 19) and inputs.getenv("AWS_BEARER_TOKEN_BEDROCK")
    mode = urls.MESSAGES if claude and not bearer else "bedrock_converse"
    key = next((inputs.getenv(name) for name in _AWS if inputs.getenv(name)), None)
    source = key.source if key else Source(LOGIN, "AWS's own chain")
    url = region.like(f"https://bedrock-runtime.{region}.amazonaws.com")
    return RequestSettings("bedrock", url, mode, Text("aws-sdk", source))
