"""A QQ platform on this machine: token, gateway address, websocket. Runs under a release's Python.

    python loopback_qq.py ADDRESS PORT

Says `ready PORT` and then what happens; obeys a line each on its input:

    close CODE       closes every websocket with that code
    refuse CODE      does so with every one that asks for a session, until `refuse 0`
    token bad        gives no token any more, as for a wrong secret
"""

from __future__ import annotations

import asyncio
import json
import sys

from aiohttp import WSMsgType, web  # type: ignore[import-not-found]

ADDRESS, PORT = sys.argv[1], int(sys.argv[2])
sockets: set[web.WebSocketResponse] = set()
mode = {"refuse": "0", "token": "good"}


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
    elif said["op"] == 2:
        user = {"id": "1", "username": "bot", "bot": True}
        ready = {"version": 1, "session_id": "one", "user": user}
        await socket.send_json({"op": 0, "s": 1, "t": "READY", "d": ready})
        say("session")
    elif said["op"] == 6:
        await socket.send_json({"op": 0, "s": 2, "t": "RESUMED", "d": ""})
        say("session")


async def anything(request: web.Request) -> web.Response:
    """Whatever else the gateway would fetch through its proxy ends here."""
    return web.json_response({}, status=404)


async def obey() -> None:
    """Read commands until the test closes our input."""
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        word, value = line.split()
        if word == "close":
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
    app.router.add_route("*", "/{path:.*}", anything)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, ADDRESS, PORT).start()
    say("ready", PORT)
    await obey()


if __name__ == "__main__":
    asyncio.run(main())
