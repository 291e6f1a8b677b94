"""A QQ platform and a model on this machine. Runs under a release's Python.

    python loopback_qq.py ADDRESS PORT

Prints `ready PORT`, then one line for each event: `heard "TEXT"` for a message of the bot, and
`asked` for a question to the model. Reads one command per line from its input:

    close CODE       close every websocket with that code
    refuse CODE      close every websocket that asks for a session, until `refuse 0`
    resume CODE      the same only for those that resume an old session, until `resume 0`
    token bad        give out no more tokens, as for a wrong secret
    model MODE       let the model wait for ever (`wait`, the default), answer (`answer`), reject
                     the key (`reject`), fail with HTTP 500 (`fail`) or hang up (`drop`)
    say TEXT         send a message of a friend to the bot
"""

from __future__ import annotations

import asyncio
import json
import sys
from itertools import count

from aiohttp import WSMsgType, web  # type: ignore[import-not-found]

ADDRESS, PORT = sys.argv[1], int(sys.argv[2])
sockets: set[web.WebSocketResponse] = set()
mode = {"refuse": "0", "resume": "0", "token": "good", "model": "wait"}
sent = count(1)


def say(*words: object) -> None:
    """Tell the test."""
    print(*words, flush=True)  # noqa: T201


async def token(request: web.Request) -> web.Response:
    """Give an access token."""
    if mode["token"] == "bad":
        return web.json_response({"code": 100016, "message": "invalid appid or secret"})
    return web.json_response({"access_token": "not-a-token", "expires_in": "7200"})


async def address(request: web.Request) -> web.Response:
    """Tell where the websocket is."""
    return web.json_response({"url": f"ws://{ADDRESS}:{PORT}/ws"})


async def websocket(request: web.Request) -> web.WebSocketResponse:
    """Speak the protocol as far as an adapter needs it to call itself ready."""
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    sockets.add(socket)
    await socket.send_json({"op": 10, "d": {"heartbeat_interval": 1000}})
    try:
        async for message in socket:
            if message.type == WSMsgType.TEXT:
                await answer(socket, json.loads(message.data))
    finally:
        sockets.discard(socket)
        say("gone")
    return socket


async def answer(socket: web.WebSocketResponse, said: dict[str, object]) -> None:
    """Identify and resume give a session, or the door."""
    if said["op"] == 1:
        await socket.send_json({"op": 11})
    elif mode["refuse"] != "0":
        await socket.close(code=int(mode["refuse"]), message=b"refused")
    elif said["op"] == 6 and mode["resume"] != "0":
        await socket.close(code=int(mode["resume"]), message=b"Session timed out")
    elif said["op"] == 2:
        user = {"id": "1", "username": "bot", "bot": True}
        ready = {"version": 1, "session_id": "one", "user": user}
        await socket.send_json({"op": 0, "s": 1, "t": "READY", "d": ready})
        say("session")
    elif said["op"] == 6:
        await socket.send_json({"op": 0, "s": 2, "t": "RESUMED", "d": ""})
        say("session")


async def message(request: web.Request) -> web.Response:
    """Take what the bot says to its friend."""
    said = await request.json()
    text = said.get("content") or said.get("markdown", {}).get("content", "")
    if text:
        say("heard", json.dumps(text))
    return web.json_response({"id": f"answer-{next(sent)}", "timestamp": "0"})


async def model(request: web.Request) -> web.StreamResponse:
    """Answer, reject the key, or think for ever, so that an answer is being written."""
    asked = await request.json()
    if asked.get("tools"):  # not for a title or another small thing
        say("asked")
    if mode["model"] == "reject":
        error = {"message": "Incorrect API key provided", "code": "invalid_api_key"}
        return web.json_response({"error": error}, status=401)
    if mode["model"] == "fail":
        error = {"message": "The server had an error while processing your request"}
        return web.json_response({"error": error}, status=500)
    if mode["model"] == "drop" and request.transport:
        request.transport.close()
    if mode["model"] == "answer":
        return await answered(request, bool(asked.get("stream")))
    await asyncio.Event().wait()
    return web.json_response({})


async def answered(request: web.Request, stream: bool) -> web.StreamResponse:
    """One word, in one piece or as a stream."""
    head = {"id": "c1", "created": 1, "model": "thinker"}
    said = {"role": "assistant", "content": "Yes."}
    if not stream:
        choice = {"index": 0, "message": said, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        whole = head | {"object": "chat.completion", "choices": [choice], "usage": usage}
        return web.json_response(whole)
    answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await answer.prepare(request)
    for delta, reason in ((said, None), ({}, "stop")):
        part = {"index": 0, "delta": delta, "finish_reason": reason}
        event = head | {"object": "chat.completion.chunk", "choices": [part]}
        await answer.write(f"data: {json.dumps(event)}\n\n".encode())
    await answer.write(b"data: [DONE]\n\n")
    return answer


async def friend(text: str) -> None:
    """Send a message to every bot that has a session."""
    for socket in list(sockets):
        number = next(sent)
        said = {
            "id": f"message-{number}",
            "author": {"user_openid": "friend"},
            "content": text,
            "timestamp": "2026-01-01T00:00:00+00:00",
        }
        told = {"op": 0, "s": 10 + number, "t": "C2C_MESSAGE_CREATE", "d": said}
        await socket.send_json(told)


async def anything(request: web.Request) -> web.Response:
    """Whatever else the gateway would fetch through its proxy ends here."""
    return web.json_response({}, status=404)


async def obey() -> None:
    """Read commands until the test closes our input."""
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        word, value = line.strip().split(maxsplit=1)
        if word == "say":
            await friend(value)
        elif word == "close":
            for socket in list(sockets):
                await socket.close(code=int(value), message=b"Session timed out")
        else:
            mode[word] = value
        say("done", word)


async def main() -> None:
    """Serve until the input ends."""
    app = web.Application()
    app.router.add_post("/app/getAppAccessToken", token)
    app.router.add_get("/gateway", address)
    app.router.add_get("/ws", websocket)
    app.router.add_post("/v2/users/{user}/messages", message)
    app.router.add_post("/model/chat/completions", model)
    app.router.add_route("*", "/{path:.*}", anything)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, ADDRESS, PORT).start()
    say("ready", PORT)
    await obey()


if __name__ == "__main__":
    asyncio.run(main())
