package grebe.spark;

import java.io.IOException;
import java.net.InetAddress;
import java.util.Deque;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.function.Function;

import py4j.ClientServerConnection;
import py4j.Gateway;
import py4j.GatewayServer;
import py4j.Protocol;
import py4j.StringUtil;

/**
 * Sends questions to the planner in Python, over connections of its own that are authenticated on both sides (see
 * `AuthenticatedSocketFactory`). While a thread waits for its answer, it carries out what the planner asks back, and a question that
 * arises meanwhile goes over the same connection.
 *
 * It shares nothing with the client that PySpark makes for its own callbacks, which has no authentication.
 */
final class PlannerClient implements Function<String, String> {
  /** Characters of a question; the server in Python reads no more. */
  private static final int LONGEST = 32 << 20;
  private static final String COMMAND = "c\nplanner\nanswer\ns";
  private static final String END = "\ne\n";
  private static final byte[] LOOPBACK = {127, 0, 0, 1};

  private final GatewayServer server;
  private final Gateway gateway;
  private final AuthenticatedSocketFactory sockets;
  private final int port;
  private final Deque<ClientServerConnection> idle = new ConcurrentLinkedDeque<>();
  private final ThreadLocal<ClientServerConnection> used = new ThreadLocal<>();

  PlannerClient(GatewayServer server, int port, byte[] key) {
    this.server = server;
    this.gateway = server.getGateway();
    this.port = port;
    this.sockets = new AuthenticatedSocketFactory(key);
  }

  @Override
  public String apply(String question) {
    if (question.length() > LONGEST) {
      throw new IllegalArgumentException("a question of " + question.length() + " characters is too long for the planner");
    }
    String command = COMMAND + StringUtil.escape(question) + END;
    ClientServerConnection outer = used.get();
    return text(outer == null ? send(command) : outer.sendCommand(command));
  }

  private String send(String command) {
    ClientServerConnection connection = connection();
    used.set(connection);
    boolean answered = false;
    try {
      String reply = connection.sendCommand(command);
      answered = true;
      return reply;
    } finally {
      used.remove();
      if (answered) {
        idle.addLast(connection);
      } else {
        connection.shutdown();
      }
    }
  }

  private ClientServerConnection connection() {
    ClientServerConnection found = idle.pollLast();
    if (found != null) {
      return found;
    }
    try {
      ClientServerConnection made = new ClientServerConnection(
          gateway, sockets.createSocket(InetAddress.getByAddress(LOOPBACK), port), null, null, server, 0);
      made.setInitiatedFromClient(true);
      return made;
    } catch (IOException problem) {
      throw new IllegalStateException("the planner in Python cannot be reached: " + problem.getMessage(), problem);
    }
  }

  private String text(String reply) {
    try {
      return (String) Protocol.getReturnValue(reply, gateway);
    } catch (RuntimeException | Error problem) {
      throw problem;
    } catch (Throwable problem) {
      throw new IllegalStateException("the planner refused a question", problem);
    }
  }
}
