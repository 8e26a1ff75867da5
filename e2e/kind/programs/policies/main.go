// The network policy controller of kube-router, without its router and its service proxy. It enforces policies with
// iptables and ipset in the network namespace of the node that it runs on.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/cloudnativelabs/kube-router/v2/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/v2/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/v2/pkg/options"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	config := options.NewKubeRouterConfig()
	kubeconfig := flag.String("kubeconfig", "", "path of a kubeconfig; without it, the ServiceAccount of the Pod")
	flag.StringVar(&config.HostnameOverride, "hostname-override", "", "name of the node")
	flag.DurationVar(&config.IPTablesSyncPeriod, "sync-period", time.Minute, "time between complete syncs")
	flag.Parse()
	if err := run(config, *kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(config *options.KubeRouterConfig, kubeconfig string) error {
	access, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return err
	}
	config.EnableIPv4, config.EnableIPv6, config.RunFirewall = true, false, true
	stop := make(chan struct{})
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	namespaces := factory.Core().V1().Namespaces().Informer()
	policies := factory.Networking().V1().NetworkPolicies().Informer()
	factory.Start(stop)
	factory.WaitForCacheSync(stop)

	iptables, ipsets, err := netpol.NewIPTablesHandlers(config)
	if err != nil {
		return err
	}
	controller, err := netpol.NewNetworkPolicyController(
		client, config, pods, policies, namespaces, &sync.Mutex{}, iptables, ipsets)
	if err != nil {
		return err
	}
	handlers := map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		pods:       controller.PodEventHandler,
		namespaces: controller.NamespaceEventHandler,
		policies:   controller.NetworkPolicyEventHandler,
	}
	for informer, handler := range handlers {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	return runUntilSignal(controller, stop)
}

func runUntilSignal(controller *netpol.NetworkPolicyController, stop chan struct{}) error {
	beats := make(chan *healthcheck.ControllerHeartbeat, 10)
	go func() {
		for range beats {
		}
	}()
	var group sync.WaitGroup
	group.Add(1)
	go controller.Run(beats, stop, &group)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	<-signals
	close(stop)
	group.Wait()
	return nil
}
