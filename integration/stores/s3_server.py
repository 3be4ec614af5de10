"""An S3 server in a process of its own: moto's, one request at a time, so that a conditional put is one step as in S3.

    python s3_server.py PORT [--ignore-conditions]

With the option it is like those services that take the header If-None-Match and do not look at it.
"""

import sys
import threading

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple


def serialised(application, ignore_conditions):
    lock = threading.Lock()

    def answer(environ, start_response):
        if ignore_conditions:
            environ.pop("HTTP_IF_NONE_MATCH", None)
        with lock:
            return list(application(environ, start_response))

    return answer


if __name__ == "__main__":
    moto = DomainDispatcherApplication(create_backend_app)
    application = serialised(moto, "--ignore-conditions" in sys.argv)
    run_simple("127.0.0.1", int(sys.argv[1]), application, threaded=True, request_handler=MotoRequestHandler)
